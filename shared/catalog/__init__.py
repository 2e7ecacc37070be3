"""The catalog: facts, formulas and prices of instance types, as one dated document.

* `building.build_catalog` builds the document from AWS's data about types, zones and prices;
* `catalog.load_catalog` decodes it to model values, `catalog.embedded_catalog` returns the catalog
  that ships with Dovetail;
* `apply_settings.apply_kubelet` applies the kubelet settings of a Provisioner to a type;
* `summary.summarize` returns its age and origin.

Import from the modules: nothing is imported here, so that a cold start pays only for decoding.
"""
