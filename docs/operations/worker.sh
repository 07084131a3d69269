#!/bin/sh
#SBATCH --job-name=veiltab --ntasks=1 --cpus-per-task=1 --mem=1G --time=12:00:00 --requeue
ulimit -c 0
pki=$HOME/cluster-pki/worker
export VEILTAB_TASKS_KEY=$pki/tasks.key DASK_DISTRIBUTED__WORKER__HTTP__ROUTES='[]'
exec $HOME/veiltab/bin/dask worker tls://curator.example.org:8786 --nthreads 1 --no-dashboard --dashboard-address 127.0.0.1:0 --local-directory "$TMPDIR" --death-timeout 600 --tls-ca-file $pki/ca.pem --tls-cert $pki/worker.pem --tls-key $pki/worker.key
