"""Tests of sfr_fa: tiny networks gain nothing from threads, and lose much where other programs run."""

import torch

torch.set_num_threads(1)
