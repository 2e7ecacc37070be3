"""The page of `dovetail report`: one file, nothing fetched."""
