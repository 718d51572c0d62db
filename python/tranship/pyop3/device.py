"""pyop3's module of devices."""

from . import CPU, CUDAGPU, HOST, Device, FakeGPU, current_device, offloading, on_host

__all__ = ["CPU", "CUDAGPU", "HOST", "Device", "FakeGPU", "current_device", "offloading", "on_host"]
