"""The support bundle: what there is to look at on a node, without what is nobody's business."""
