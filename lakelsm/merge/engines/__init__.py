"""The merge engines that combine or choose rows, one file each; the kernel itself implements `deduplicate`."""
