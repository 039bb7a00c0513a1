from __future__ import annotations

from recbias.core.measurements.columns import METRICS, SIGNIFICANCE


def test_the_tables_have_the_columns_that_were_promised() -> None:
    assert ",".join(METRICS) == (
        "dataset,model,seed,fold,metric,k,group,target,value,std,n,undefined,ci_low,ci_high"
    )
    assert ",".join(SIGNIFICANCE) == (
        "dataset,model,seed,fold,metric,k,group,target,test,between,a,b,n,mean_a,mean_b,difference,"
        "ci_low,ci_high,statistic,df,p,p_adjusted,correction,family,family_size,alpha,significant,"
        "effect_size"
    )
