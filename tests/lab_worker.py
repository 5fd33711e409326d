"""Train a tiny model in a separate process, for test_lab_training. The script runs either as one of several processes
under torchrun, or alone until it kills itself.

The arguments are the path of the text, the checkpoint folder, the run as JSON, a dtype, and the moment at which to die:
"never", "between" (after step 8, when the last checkpoint is from step 6) or "saving" (half-way through writing the
checkpoint of step 6).
"""

import io
import json
import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from lab_models import Text, Windows  # this file runs as a script

from ropebook.lab import training


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def torn(state, file, save=torch.save):
    whole = io.BytesIO()
    save(state, whole)
    if state["step"] < 6:
        file.write(whole.getvalue())
        return
    file.write(whole.getvalue()[: whole.tell() // 2])
    file.flush()
    die()


def main():
    text, folder, run, dtype, death = sys.argv[1:]
    torch.set_num_threads(1)
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    if death == "saving":
        torch.save = torn
    run = Windows(**json.loads(run))
    trainer = training.Trainer(run, Text.of(Path(text).read_bytes()), folder, dtype=getattr(torch, dtype))
    for _ in trainer.train(every=3):
        if death == "between" and trainer.step == 8:
            die()
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
