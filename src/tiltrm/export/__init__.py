"""Models as ONNX, for onnxruntime and for the page that solves in a browser. Extra: [export]."""
