from rankdp.learn.linear import LinearPairwiseRanker as LinearPairwiseRanker
from rankdp.learn.towers import TwoTowerRanker as TwoTowerRanker
from rankdp.learn.training_files import learn_files as learn_files
from rankdp.learn.training_files import load as load
from rankdp.learn.training_files import predict_files as predict_files
from rankdp.learn.training_files import train_report as train_report
