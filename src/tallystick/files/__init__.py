"""Read and write files: local, in zip archives, on the web and in object stores."""
