"""One round a night as an Airflow 3 DAG, with Beam's operator: wait for the snapshot and the last round, then rank.

Nights that were missed are caught up with, one after the other (`catchup`, `max_active_runs`, `depends_on_past`): a
round starts when the one before has its manifest, which the command writes when the job is done. The round of the
night before FIRST_NIGHT, from seeds, is made by hand.

Variables: `semrank_bucket`, `semrank_first_night` (YYYY-MM-DD), `semrank_runner` (DataflowRunner, PortableRunner, ...),
`semrank_options` (JSON object of that runner's options), `semrank_home` (a checkout on Airflow's workers) and
`semrank_python` (a Python there that has semrank).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.providers.apache.beam.operators.beam import BeamRunPythonPipelineOperator
from airflow.providers.google.cloud.sensors.gcs import GCSObjectExistenceSensor
from airflow.sdk import DAG, Variable

BUCKET = Variable.get("semrank_bucket")
NIGHT, LAST_NIGHT = "{{ ds }}", "{{ macros.ds_add(ds, -1) }}"

with DAG(
    "semrank_rounds",
    start_date=datetime.fromisoformat(Variable.get("semrank_first_night")).replace(tzinfo=UTC),
    schedule="15 2 * * *",
    catchup=True,
    max_active_runs=1,
    default_args={"depends_on_past": True, "retries": 2, "retry_delay": timedelta(minutes=10)},
) as dag:
    snapshot = GCSObjectExistenceSensor(
        task_id="wait_for_snapshot", bucket=BUCKET, object=f"snapshots/{NIGHT}/manifest.json", mode="reschedule"
    )
    last_round = GCSObjectExistenceSensor(
        task_id="wait_for_last_round", bucket=BUCKET, object=f"rounds/{LAST_NIGHT}/manifest.json", mode="reschedule"
    )
    rank = BeamRunPythonPipelineOperator(
        task_id="rank",
        py_file=Variable.get("semrank_home") + "/deploy/dataflow/main.py",
        py_interpreter=Variable.get("semrank_python"),
        runner=Variable.get("semrank_runner"),
        default_pipeline_options=Variable.get("semrank_options", deserialize_json=True),
        pipeline_options={
            "snapshot": f"gs://{BUCKET}/snapshots/{NIGHT}",
            "previous": f"gs://{BUCKET}/rounds/{LAST_NIGHT}",
            "output": f"gs://{BUCKET}/rounds/{NIGHT}",
            "max-urls": "1000000",
            "max-per-host": "5000",
        },
    )
    [snapshot, last_round] >> rank
