"""Tasks of the benchmark to learn from and tasks to be measured on, fixed once and for all.

Near-copies (`CLOSE`) are on one side: a program for one is, but for an operator or an extent, one for the others.
About a fifth of each family is held out, as far as its near-copies allow; a scan and an attention are all in training.
"""

from evaluator.tasks.task import Task

CLOSE: tuple[frozenset[str], ...] = tuple(
    frozenset(group.split())
    for group in (
        # level 1: products; scalings; activations; norms; pooling
        "1_001 1_002 1_003 1_004 1_006 1_007 1_008 1_009 1_010 1_011 1_013 1_014 1_015 1_016 1_017 1_018",
        "1_005 1_012",
        "1_026 1_088",
        "1_021 1_025",
        "1_023 1_024",
        "1_036 1_037 1_038 1_039",
        "1_041 1_042 1_043",
        "1_044 1_045 1_046",
        # sum and mean; largest and smallest, and their places
        "1_047 1_048",
        "1_049 1_053",
        "1_051 1_052",
        # convolutions: dense, transposed, depthwise
        "1_050 1_054 1_055 1_056 1_059 1_060 1_062 1_063 1_066 1_067 1_076 1_080 1_087",
        "1_057 1_058 1_061 1_064 1_065 1_068 1_069 1_070 1_071 1_072 1_073 1_074 1_075 1_077 1_078 1_079 1_081",
        "1_082 1_083 1_084 1_085 1_086",
        # scans
        "1_089 1_090 1_091 1_092 1_093",
        # level 2
        "2_033 2_039",
        # level 3: perceptrons; LeNet, AlexNet, VGG; Inception; ResNet; DenseNet; SqueezeNet; MobileNet, EfficientNet;
        # ShuffleNet
        "3_001 3_002 3_003",
        "3_004 3_005 3_011 3_012",
        "3_006 3_007",
        "3_008 3_009 3_010",
        "3_013 3_014 3_015 3_016",
        "3_017 3_018",
        "3_019 3_020 3_021 3_022 3_023 3_024",
        "3_025 3_026",
        # vision transformers; Swin; recurrent networks, LSTM, GRU; GPT; NetVLAD; Mamba
        "3_028 3_032",
        "3_029 3_030",
        "3_033 3_034",
        "3_035 3_036 3_037 3_038",
        "3_039 3_040 3_041 3_042",
        "3_043 3_044 3_050",
        "3_046 3_047",
        "3_048 3_049",
    )
)

HELD_OUT: frozenset[str] = frozenset(
    " ".join(
        (
            "1_005 1_012",  # matmul
            "1_019 1_026 1_088",  # elementwise
            "1_023 1_024 1_040",  # rowwise
            "1_044 1_045 1_046",  # pooling
            "1_051 1_052",  # reduction
            "1_082 1_083 1_084 1_085 1_086",  # convolution
            "1_094",  # loss
            "2_002 2_006 2_007 2_014 2_019 2_024 2_030 2_033 2_036 2_039",  # chain
            "2_043 2_052 2_055 2_061 2_069 2_074 2_078 2_079 2_082 2_096",
            "3_008 3_009 3_010 3_025 3_026 3_039 3_040 3_041 3_042 3_046 3_047",  # model
        )
    ).split()
)


def held_out(task: Task) -> bool:
    """Whether `task` is for measuring alone, as the gradients of a held-out task are; no task of a user's is."""
    return task.id.removesuffix("_backward") in HELD_OUT
