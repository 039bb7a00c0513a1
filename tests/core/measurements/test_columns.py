from __future__ import annotations

from recbias.core.measures import METRICS_COLUMNS, SIGNIFICANCE_COLUMNS


def test_the_columns_of_result_files_do_not_change() -> None:
    assert ",".join(METRICS_COLUMNS) == (
        "dataset,model,seed,fold,metric,k,group,target,value,std,n,undefined,ci_low,ci_high"
    )
    assert ",".join(SIGNIFICANCE_COLUMNS) == (
        "dataset,model,seed,fold,metric,k,group,target,test,between,a,b,n,mean_a,mean_b,difference,"
        "ci_low,ci_high,statistic,df,p,p_adjusted,correction,family,family_size,alpha,significant,"
        "effect_size"
    )
