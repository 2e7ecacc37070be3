"""`dovetail report`: what running pods cost, and what they could cost."""
