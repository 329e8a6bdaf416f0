"""Other layers that mix the elements of a sequence, KernelBench level 3: NetVLAD and Mamba 2."""

from evaluator.tasks.norms import affine
from evaluator.tasks.notation import forward_text, normal, parameter, uniform
from evaluator.tasks.task import CASES, Array, Task


def netvlad(nn, x, clusters, clusters2, batch_norm_weight, batch_norm_bias):
    batch, steps, width = x.shape
    kept = clusters2.shape[2]  # further clusters are ghosts: they take part in the softmax alone
    assignment = nn.matmul(x.reshape(batch * steps, width), clusters)
    assignment = nn.softmax(nn.batch_norm(assignment, batch_norm_weight, batch_norm_bias), dim=1)
    assignment = assignment[:, :kept].reshape(batch, steps, kept)
    centres = nn.sum(assignment, dim=1, keepdim=True) * clusters2
    vlad = nn.transpose(nn.matmul(nn.transpose(assignment, 1, 2), x), 1, 2) - centres
    vlad = nn.normalize(vlad, p=2.0, dim=1)
    return nn.normalize(vlad.reshape(batch, width * kept), p=2.0, dim=1)


def mamba(nn, X, A, B, C):
    length = 64  # of a block
    batch, steps, heads, width = X.shape

    def blocks(x):
        return x.reshape(batch, steps // length, length, *x.shape[2:])

    def segment_sums(x):  # [..., i, j]: the sum of x[j + 1] to x[i], and -inf where j is after i
        sums = nn.cumsum(x, dim=-1)
        sums = nn.unsqueeze(sums, -1) - nn.unsqueeze(sums, -2)
        one = sums[(0,) * (len(sums.shape) - 2)]
        return nn.masked_fill(sums, nn.tril(nn.ones_like(one)) < 1, -float("inf"))

    X, B, C = blocks(X), blocks(B), blocks(C)
    A = nn.permute(blocks(A), (0, 3, 1, 2))  # [batch, heads, blocks, length]
    sums = nn.cumsum(A, dim=-1)

    scores = nn.einsum("bclhn,bcshn->bhcls", C, B) * nn.exp(segment_sums(A))
    within = nn.einsum("bhcls,bcshp->bclhp", scores, X)

    decay = nn.permute(nn.exp(sums[:, :, :, -1:] - sums), (0, 2, 3, 1))
    states = nn.einsum("bclhn,bclhp->bchpn", B * nn.unsqueeze(decay, -1), X)
    states = nn.cat((nn.zeros_like(states[:, :1]), states), dim=1)
    decay = nn.exp(segment_sums(nn.pad(sums[:, :, :, -1], (1, 0))))[:, :, :-1]
    states = nn.einsum("bhzc,bchpn->bzhpn", decay, states)

    across = nn.einsum("bclhn,bchpn->bclhp", C, states)
    across = across * nn.unsqueeze(nn.permute(nn.exp(sums), (0, 2, 3, 1)), -1)
    return (within + across).reshape(batch, steps, heads, width)


def mamba_state(nn, X, A, B, C):
    length = 64  # of a block
    batch, steps = X.shape[:2]

    def blocks(x):
        return x.reshape(batch, steps // length, length, *x.shape[2:])

    def segment_sums(x):  # [..., i, j]: the sum of x[j + 1] to x[i], and -inf where j is after i
        sums = nn.cumsum(x, dim=-1)
        sums = nn.unsqueeze(sums, -1) - nn.unsqueeze(sums, -2)
        one = sums[(0,) * (len(sums.shape) - 2)]
        return nn.masked_fill(sums, nn.tril(nn.ones_like(one)) < 1, -float("inf"))

    X, B = blocks(X), blocks(B)
    sums = nn.cumsum(nn.permute(blocks(A), (0, 3, 1, 2)), dim=-1)  # [batch, heads, blocks, length]
    decay = nn.permute(nn.exp(sums[:, :, :, -1:] - sums), (0, 2, 3, 1))
    states = nn.einsum("bclhn,bclhp->bchpn", B * nn.unsqueeze(decay, -1), X)
    states = nn.cat((nn.zeros_like(states[:, :1]), states), dim=1)
    decay = nn.exp(segment_sums(nn.pad(sums[:, :, :, -1], (1, 0))))
    return nn.einsum("bhzc,bchpn->bzhpn", decay, states)[:, -1]


def netvlad_weights(width: int, clusters: int, ghosts: int) -> tuple[Array, ...]:
    spread = f"normal(0,{width**-0.5:.6g})"
    return (
        parameter("clusters", (width, clusters + ghosts), spread),
        parameter("clusters2", (1, width, clusters), spread),
        *affine("batch_norm", clusters + ghosts),
    )


def netvlad_task(task_id: str, name: str, ghosts: int) -> Task:
    return Task(
        id=task_id,
        name=name,
        family="model",
        source=forward_text(netvlad),
        sizes={
            "cpu": uniform(x=(7, 20, 90)) + netvlad_weights(90, 32, ghosts),
            "kb": uniform(x=(2048, 100, 512)) + netvlad_weights(512, 32, ghosts),
            "kb_v0": normal(x=(32, 100, 512)) + netvlad_weights(512, 32, ghosts),
        },
        notes=(
            "Outputs are rows of norm 1 over 16,384 elements, near 0.008 each at kb: one constant for all of them is "
            "within 1e-2.",
        ),
    )


def mamba_sizes() -> dict[str, tuple[Array, ...]]:
    def arrays(draw, batch: int, heads: int, width: int, state: int) -> tuple[Array, ...]:
        steps = 128
        return (
            *draw(X=(batch, steps, heads, width)),
            parameter("A", (batch, steps, heads), "normal(0,1)"),
            parameter("B", (batch, steps, heads, state), "normal(0,1)"),
            parameter("C", (batch, steps, heads, state), "normal(0,1)"),
        )

    return {
        "cpu": arrays(uniform, batch=3, heads=3, width=20, state=10),
        "kb": arrays(uniform, batch=2048, heads=8, width=64, state=16),
        "kb_v0": arrays(normal, batch=16, heads=8, width=64, state=16),
    }


MAMBA_GROWS = (
    "Ill-conditioned: A has either sign, so that exponentials of its sums reach 1e13, and a relative change of 1e-6 of "
    "an input moves outputs by more than 1e-4."
)
# Whole numbers in A add up to hundreds, of which float32 has no exponential.
MAMBA_CASES = tuple(case for case in CASES if case not in ("integers", "alike"))

NETVLAD_GHOSTS = netvlad_task("3_046", "NetVladWithGhostClusters", ghosts=16)
NETVLAD = netvlad_task("3_047", "NetVladNoGhostClusters", ghosts=0)

MAMBA = Task(
    id="3_048",
    name="Mamba2ReturnY",
    family="model",
    source=forward_text(mamba),
    sizes=mamba_sizes(),
    cases=MAMBA_CASES,
    notes=(MAMBA_GROWS,),
)

MAMBA_STATE = Task(
    id="3_049",
    name="Mamba2ReturnFinalState",
    family="model",
    source=forward_text(mamba_state),
    sizes=mamba_sizes(),
    cases=MAMBA_CASES,
    notes=(MAMBA_GROWS, "C is a parameter of the model that takes no part in the final state."),
)
