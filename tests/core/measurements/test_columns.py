from __future__ import annotations

from recbias.core.measures import METRICS, SIGNIFICANCE


def test_the_columns_of_result_files_do_not_change() -> None:
    assert ",".join(METRICS.names) == (
        "dataset,model,seed,fold,metric,k,group,target,value,std,n,undefined,ci_low,ci_high"
    )
    assert ",".join(SIGNIFICANCE.names) == (
        "dataset,model,seed,fold,metric,k,group,target,test,between,a,b,n,mean_a,mean_b,difference,"
        "ci_low,ci_high,statistic,df,p,p_adjusted,correction,family,family_size,alpha,significant,"
        "effect_size"
    )
