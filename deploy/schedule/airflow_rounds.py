"""One round a night on Dataflow, as an Airflow DAG: wait for the last round and the snapshot, rank, finish.

Nights that were missed are caught up with, one after the other (`catchup`, `max_active_runs`, `depends_on_past`): a
round starts when the one before has its manifest. Variables: `semrank_bucket`, `semrank_region`, `semrank_template`.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow import DAG
from airflow.models import Variable
from airflow.operators.bash import BashOperator
from airflow.providers.google.cloud.operators.dataflow import DataflowStartFlexTemplateOperator
from airflow.providers.google.cloud.sensors.gcs import GCSObjectExistenceSensor

BUCKET, REGION = Variable.get("semrank_bucket"), Variable.get("semrank_region")
TEMPLATE = Variable.get("semrank_template")
FIRST_NIGHT = datetime(2026, 1, 1)
ROUND, LAST_ROUND = "rounds/{{ ds }}", "rounds/{{ macros.ds_add(ds, -1) }}"

with DAG(
    "semrank_rounds",
    start_date=FIRST_NIGHT,
    schedule="15 2 * * *",
    catchup=True,
    max_active_runs=1,
    default_args={"depends_on_past": True, "retries": 2, "retry_delay": timedelta(minutes=10)},
) as dag:
    snapshot = GCSObjectExistenceSensor(
        task_id="wait_for_snapshot", bucket=BUCKET, object="snapshots/{{ ds }}/manifest.json", mode="reschedule"
    )
    last_round = GCSObjectExistenceSensor(
        task_id="wait_for_last_round", bucket=BUCKET, object=f"{LAST_ROUND}/manifest.json", mode="reschedule"
    )
    rank = DataflowStartFlexTemplateOperator(
        task_id="rank",
        location=REGION,
        wait_until_finished=True,
        body={
            "launchParameter": {
                "jobName": "semrank-{{ ds_nodash }}",
                "containerSpecGcsPath": TEMPLATE,
                "parameters": {
                    "snapshot": f"gs://{BUCKET}/snapshots/{{{{ ds }}}}",
                    "previous": f"gs://{BUCKET}/{LAST_ROUND}",
                    "output": f"gs://{BUCKET}/{ROUND}",
                    "max-urls": "1000000",
                    "max-per-host": "5000",
                },
            }
        },
    )
    finish = BashOperator(task_id="finish", bash_command=f"semrank finish --round gs://{BUCKET}/{ROUND}")
    [snapshot, last_round] >> rank >> finish
