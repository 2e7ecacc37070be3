"""From manifest files to the snapshot that `dovetail plan` decides on."""
