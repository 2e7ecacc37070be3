"""Instance types: facts, formulas and prices, as one dated document, the catalog; AMI families.

* `building.build_catalog` builds the document from AWS's data about types, zones and prices;
* `catalog.load_catalog` decodes it to model values, `catalog.embedded_catalog` returns the catalog
  that ships with Dovetail;
* `apply_settings.apply_kubelet` applies the kubelet settings of a Provisioner to a type;
* `summary.summarize` returns its age and origin;
* `ami_families` holds what depends on the AMI family: images, disks, user data.

Import from the modules: nothing is imported here, so that a cold start pays only for decoding.
"""
