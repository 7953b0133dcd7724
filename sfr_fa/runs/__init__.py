"""Experiments that can be killed at any moment: trials as data, a folder of results, workers.

    config      what is run: ExperimentConfig unfolds into trials
    trial       how one trial is built and run, resumable bit for bit
    store       the folder of a run: finished trials, checkpoints, locks
    workers     who runs the trials: this process, local workers, Dask, Slurm
    estimates   what it will take

`python -m sfr_fa.run config.py` runs an experiment; `python -m sfr_fa.status` shows how far it is.
"""
