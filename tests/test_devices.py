"""A device is named, measured or described."""

import re

import pytest

from tallystick import BadInput
from tallystick.answers import devices
from tallystick.answers.devices import DEVICES, Device, device_of, parse_size


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("h100", "h100"),
        ("H100 PCIe", "h100-pcie"),
        ("a100", "a100-80gb"),
        ("A100-80GB", "a100-80gb"),
        ("RTX 4090", "rtx4090"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb"),
        ("Tesla V100-SXM2-16GB", "v100-16gb"),
        ("NVIDIA RTX A6000", "a6000"),
        ("tpu-v5e", "tpu-v5e"),
    ],
)
def test_a_name_as_people_and_drivers_write_it(written, name):
    assert device_of(written) == DEVICES[name]


def test_every_figure_has_a_source_and_is_plausible():
    for name, device in DEVICES.items():
        assert device.name == name
        assert device.source
        assert 16e9 <= device.memory <= 256e9, name
        # A product of 16 bits is made of two numbers read: no card computes less than 80 operations for a byte.
        assert 70 < device.flops / device.bandwidth < 600, name


def test_the_figures_of_an_h100():
    """989.4 dense TFLOPS are half of the 1,979 with sparsity that the data sheet prints."""
    assert device_of("h100")[1:5] == (80_000_000_000, 989.4e12, 3.35e12, 700)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("24GB", 24 * 10**9),
        ("24GiB", 24 * 2**30),
        ("24g", 24 * 10**9),
        ("1.5 TiB", 3 * 2**39),
        ("1024", 1024),
        ("1024b", 1024),
        ("24ib", None),
        ("-1GB", None),
        ("9" * 400, None),
        ("", None),
        ("GB", None),
    ],
)
def test_sizes(text, size):
    assert parse_size(text) == size


def test_bytes_stand_for_a_device():
    assert device_of("24GiB").memory == device_of(24 * 2**30).memory == 25_769_803_776
    assert device_of("24GiB").flops is None


def test_figures_of_ones_own():
    mine = device_of({"name": "mine", "memory": "48GB", "flops": 1e14})
    assert mine == Device("mine", 48 * 10**9, 1e14, None, None, "as given")
    assert device_of(mine) is mine


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("h10", "no device is called 'h10'; nearest: h100"),
        ("rtx409", "nearest: rtx4090"),
        ("", "no device is called ''"),
        ("24 bananas", "no device is called '24 bananas'"),
        ("0GB", "holds nothing"),
        (0, "holds nothing"),
        (True, "the device is True"),
        (1.5, "the device is 1.5"),
        (None, "the device is None"),
        ({}, "memory is None"),
        ({"memory": "much"}, "memory is the string 'much'"),
        ({"memory": True}, "memory is True"),
        ({"memory": 1, "flop": 3}, "no the string 'flop'; nearest: flops"),
        ({"memory": 1, "watts": -1}, "watts is -1"),
        ({"memory": 1, "flops": float("nan")}, "flops is nan"),
    ],
)
def test_what_is_no_device(given, words):
    with pytest.raises(BadInput, match=re.escape(words)):
        device_of(given)


def test_auto_is_the_card_that_the_driver_shows(monkeypatch):
    monkeypatch.setattr(devices, "_first_cuda_device", lambda: ("NVIDIA H200", 150_000_000_000))
    assert device_of("auto") == DEVICES["h200"]._replace(memory=150_000_000_000)
    monkeypatch.setattr(devices, "_first_cuda_device", lambda: ("Something New", 7 * 10**9))
    assert device_of("AUTO") == Device("Something New", 7 * 10**9, source="its driver")


def test_auto_is_the_ram_where_there_is_no_card(monkeypatch):
    monkeypatch.setattr(devices, "_first_cuda_device", lambda: None)
    found = device_of("auto")
    assert found.name == "RAM"
    assert found.memory > 2**20
