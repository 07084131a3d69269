"""Work in parts that this process, the machine's cores or a cluster perform."""
