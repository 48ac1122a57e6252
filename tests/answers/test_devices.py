"""A device is named, measured or described."""

import re

import pytest

from tallystick import BadInput
from tallystick.answers import devices
from tallystick.answers.devices import DEVICES, Device, device_of, parse_size
from tallystick.cli.main import main


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("h100", "h100"),
        ("H100 PCIe", "h100-pcie"),
        ("4090", "rtx4090"),
        ("3090", "rtx3090"),
        ("3080", "rtx3080"),
        ("RTX 4070", "rtx4070"),
        (" 5090 ", "rtx5090"),
        ("NVIDIA B200", "b200"),
        ("a100 80gb", "a100-80gb"),
        ("A100-40", "a100-40gb"),
        ("V100 32G", "v100-32gb"),
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
        assert 10e9 <= device.memory <= 256e9, name
        # A product of 16 bits is made of two numbers read: no card computes less than 80 operations
        # for a byte.
        assert 70 < device.flops / device.bandwidth < 600, name


def test_the_figures_of_an_h100():
    """989.4 dense TFLOPS are half of the 1,979 with sparsity that the data sheet prints."""
    assert device_of("h100")[2:5] == (989.4e12, 3.35e12, 700)


# GiB as public logs have them, two decimals. The logs are named in devices.py.
SHOWN = {
    "t4": 14.56, "a10": 22.06, "l4": 22.03, "l40s": 44.40, "a40": 44.35, "a100-40gb": 39.50, "a100-80gb": 79.25, "h100": 79.22,
    "h200": 139.80, "b200": 178.35, "rtx3090": 23.56, "rtx4090": 23.53, "rtx5090": 31.36, "v100-16gb": 15.75, "mi300x": 191.98,
}  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_a_device_holds_what_its_driver_shows(name):
    device = device_of(name)
    assert round(device.memory / 2**30, 2) == SHOWN[name]
    assert device.memory_by == "its driver"


def test_where_no_log_was_found_it_is_the_data_sheet():
    assert (device_of("a30").memory, device_of("a30").memory_by) == (24 * 10**9, "the data sheet")
    assert {device.memory_by for device in DEVICES.values()} == {"its driver", "the data sheet"}


def test_what_the_driver_keeps_is_no_room():
    """0.49 GiB on an RTX 4090 and 0.50 on an L40: in use beyond what PyTorch had reserved, in two
    public logs.
    """
    for name in ("rtx4090", "l40s", "h100"):
        assert 0.3e9 <= device_of(name).context <= 0.6e9
        assert device_of(name).room == device_of(name).memory - device_of(name).context
    assert device_of("24GB").room == 24 * 10**9
    assert device_of("tpu-v4").context == 0


@pytest.mark.parametrize("name", ["a100", "A100", "v100", "NVIDIA A100"])
def test_a_name_of_cards_with_more_or_less_memory_names_them(name):
    small, large = {"a": ("a100-40gb", "a100-80gb"), "v": ("v100-16gb", "v100-32gb")}[name.lower().split()[-1][0]]
    with pytest.raises(BadInput, match=f"choose {small} or {large}"):
        device_of(name)
    assert device_of(name, any_memory=True) == DEVICES[large]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("24", "is 24GB meant?"),
        ("24.5", "is 24.5GB meant?"),
        (" 16 ", "is 16GB meant?"),
        ("80", "is 80GB meant?"),
        ("40", "is 40GB meant, or a40 or l40s?"),
        ("100000000", "is 100000000GB meant?"),
    ],
)
def test_a_number_without_a_unit_is_no_bytes(given, words):
    with pytest.raises(BadInput, match=re.escape(words)):
        device_of(given)


def test_bytes_may_be_all_written_out():
    assert device_of("25262096384").memory == 25_262_096_384
    assert device_of("1024b").memory == device_of(1024).memory == 1024


def test_one_line_says_which_devices_there_are(capsys):
    assert main(["memory", "gpt2", "--device", "foo"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert all(name in said for name in DEVICES)
    assert main(["memory", "gpt2", "--device", "24"]) == 2
    assert capsys.readouterr().err == "tallystick: the device '24' is a number without a unit: is 24GB meant?\n"


def test_the_answer_says_whose_figure_it_is(capsys):
    assert main(["memory", "gpt2", "--device", "4090"]) == 0
    assert "rtx4090 has 25.3 GB (23.5 GiB) according to its driver, minus" in capsys.readouterr().out
    assert main(["fit", "gpt2", "--device", "a30"]) == 0
    assert "a30 has 24.0 GB (22.4 GiB) according to the data sheet" in capsys.readouterr().out
    assert main(["fit", "gpt2", "--device", "24GB"]) == 0
    out = capsys.readouterr().out
    assert "24.0 GB (22.4 GiB)" in out
    assert "data sheet" not in out


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
        ("h10", "unknown device 'h10'; nearest: h100"),
        ("rtx409", "nearest: rtx4090"),
        ("", "unknown device ''"),
        ("24 bananas", "unknown device '24 bananas'"),
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
    assert device_of("AUTO")[:2] == ("Something New", 7 * 10**9)
    assert device_of("AUTO").memory_by == "its driver"
    monkeypatch.setattr(devices, "_first_cuda_device", lambda: ("NVIDIA A30", 25_000_000_000))
    assert device_of("auto") == DEVICES["a30"]._replace(memory=25_000_000_000, memory_by="its driver")


def test_auto_is_the_ram_where_there_is_no_card(monkeypatch):
    monkeypatch.setattr(devices, "_first_cuda_device", lambda: None)
    found = device_of("auto")
    assert found.name == "RAM"
    assert found.memory > 2**20
