"""The renderer: pictures, type and sound of an ad, drawn on the CPU. It knows nothing of workflows or servers."""
