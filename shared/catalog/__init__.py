"""What can be bought: facts, formulas and prices of instance types, as one dated document.

* `building.build_catalog` makes the document from what AWS tells about types, zones and prices;
* `reading.load_catalog` reads it into model values, `reading.embedded_catalog` is the one that
  ships with Dovetail;
* `kubelet.apply_kubelet` fits a type to what a Provisioner asks of its nodes;
* `summary.summarize` says how old it is and where it comes from.

Import from the modules: nothing is imported here, so that a cold start pays for reading only.
"""
