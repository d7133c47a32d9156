"""Launches inside GPU graphs: what is kept of a capture, and what is read of a replay."""

import gc
import types
import unittest
import weakref
from unittest import mock

from attest_record import describe
from attest_record.graphs import OWN_MEMORY, Frozen, Graphs
from attest_record.session import Settings, Step
from attest_record.truth import NoTruth
from attest_record.truth_graphs import sglang_capture_truth, sglang_replay_truth

from .harness import run, torch
from .sglang_world import World


def ints(values, kind=None):
    return torch.tensor(values, dtype=kind or torch.int32)


class Graph:
    """A graph's Python side: nothing of a launch is run."""

    def capture_begin(self):
        pass

    def capture_end(self):
        pass

    def replay(self):
        return "replayed"

    def pool(self):
        return (0, 1)


class Noted(unittest.TestCase):
    def setUp(self):
        self.seen = []
        self.graphs = self.made(every=1000)
        self.step = Step("site", None, None, None, owner=self)

    def made(self, every):
        return Graphs(
            Settings(every=every),
            lambda launch, path, batch: self.seen.append((launch, path, batch)),
            lambda: True,
            lambda: 1 if every == 1 else 1000,
        )

    def launch(self, q=None, lengths=None, **scalars):
        bound = {
            "q": torch.empty(4, 8, 128, dtype=torch.bfloat16) if q is None else q,
            "seqused_k": ints([5, 5]) if lengths is None else lengths,
            **scalars,
        }
        return self.graphs.note("unified_attention", bound, self.step)

    def capture(self, *launches):
        graph = Graph()
        self.graphs.capture_begin(Graph.capture_begin)(graph)
        for launch in launches:
            launch()
        self.graphs.capture_end(Graph.capture_end)(graph)
        return graph

    def replay(self, graph, batch=None):
        act = lambda _, forward_batch: self.graphs.replay(Graph.replay)(graph)
        return self.graphs.with_batch(act)(None, batch)

    def test_nothing_is_noted_outside_a_capture(self):
        self.assertFalse(self.launch())
        self.replay(Graph())
        self.assertEqual(self.seen, [])

    def test_a_replay_is_read_after_it_ran_and_its_result_is_its_own(self):
        lengths = ints([5, 5])
        graph = self.capture(lambda: self.assertTrue(self.launch(lengths=lengths)))
        lengths[0] = 77
        batch = types.SimpleNamespace(rows=2)
        self.assertEqual(self.replay(graph, batch), "replayed")
        (_, captured, nobody), (launch, replayed, given) = self.seen
        self.assertEqual((captured, nobody, replayed, given.rows), ("capture", None, "replay", 2))
        self.assertEqual(describe.values_of(launch.bound["seqused_k"]), [77, 5])

    def test_the_batch_is_the_one_that_was_handed_over(self):
        graph = self.capture(self.launch)
        batch = types.SimpleNamespace(rows=2)

        def padded(_, forward_batch):
            forward_batch.rows = 4
            self.graphs.replay(Graph.replay)(graph)

        self.graphs.with_batch(padded)(None, forward_batch=batch)
        self.assertEqual(self.seen[-1][2].rows, 2)

    def test_activations_are_not_kept_alive(self):
        q = torch.empty(4, 8, 128, dtype=torch.bfloat16)
        gone = weakref.ref(q)
        graph = self.capture(lambda: self.launch(q=q))
        del q
        gc.collect()
        self.assertIsNone(gone())
        self.replay(graph)
        frozen = self.seen[-1][0].bound["q"]
        self.assertEqual(describe.Describer().tensor(frozen)["shape"], [4, 8, 128])

    def test_layers_that_say_the_same_are_kept_once(self):
        graph = self.capture(
            self.launch, self.launch, lambda: self.launch(window_size=(3, 0)), self.launch
        )
        self.seen.clear()
        self.replay(graph)
        self.assertEqual(len(self.seen), 2)

    def test_the_first_replay_of_every_graph_is_read_then_a_sample(self):
        graphs = [self.capture(self.launch) for _ in range(3)]
        self.seen.clear()
        for graph in graphs:
            for _ in range(300):
                self.replay(graph)
        self.assertEqual(len(self.seen), 3)
        for _ in range(1000):
            self.replay(graphs[0])
        self.assertEqual(len(self.seen), 4)

    def test_every_replay_is_read_where_that_is_asked_for(self):
        self.graphs = self.made(every=1)
        graph = self.capture(self.launch)
        self.seen.clear()
        for _ in range(5):
            self.replay(graph)
        self.assertEqual(len(self.seen), 5)

    def test_a_graph_that_goes_away_takes_what_was_kept_along(self):
        graph = self.capture(self.launch)
        self.assertEqual(len(self.graphs._graphs), 1)
        del graph
        self.seen.clear()
        gc.collect()
        self.assertEqual(len(self.graphs._graphs), 0)

    def test_a_graph_that_cannot_be_held_weakly_is_left_alone(self):
        class Stiff(Graph):
            __slots__ = ()
            __hash__ = None

        graph = Stiff()
        self.graphs.capture_begin(Graph.capture_begin)(graph)
        self.launch()
        self.graphs.capture_end(Graph.capture_end)(graph)
        self.assertEqual((self.replay(graph), self.seen), ("replayed", []))

    def test_graphs_that_are_never_seen_to_be_replayed_are_told(self):
        self.assertEqual(self.graphs.unseen(), "")
        graph = self.capture(self.launch)
        self.capture(lambda: None)  # nothing in it that anybody watches
        self.assertRegex(self.graphs.unseen(), "^captured graphs: 1; none")
        self.replay(graph)
        self.assertEqual(self.graphs.unseen(), "")

    def test_what_the_graph_made_has_no_value_when_its_capture_ends(self):
        made, given = ints([5, 5]), ints([0, 4, 8])
        address = describe.storage_of(made)[1]
        segments = [{"address": address, "total_size": 8, "segment_pool_id": (0, 1)}]
        cuda = types.SimpleNamespace(memory_snapshot=lambda: segments)
        with mock.patch.dict("sys.modules", {"torch": types.SimpleNamespace(cuda=cuda)}):
            self.capture(lambda: self.launch(lengths=made, cu_seqlens_q=given))
        bound = self.seen[0][0].bound
        described = describe.Describer().tensor(bound["seqused_k"], with_values=True)
        self.assertEqual((described["sha256"], "values" in described), (OWN_MEMORY, False))
        self.assertIs(bound["cu_seqlens_q"], given)

    def test_where_torch_does_not_tell_nothing_of_a_capture_is_read(self):
        with mock.patch.dict("sys.modules", {"torch": types.SimpleNamespace()}):
            self.capture(self.launch)
        self.assertIsInstance(self.seen[0][0].bound["seqused_k"], Frozen)


class Truth(unittest.TestCase):
    def setUp(self):
        self.world = World([30, 9], draft_tokens=4, page_size=1)
        self.backend = self.world.backend()

    def dummies(self, mode, count, width):
        batch = self.world.batch(mode, [width] * 2)
        batch.batch_size = count
        batch.input_ids = torch.zeros(count * width, dtype=torch.int64)
        batch.seq_lens = ints([width] * count, torch.int64)
        batch.out_cache_loc = torch.zeros(count * width, dtype=torch.int64)
        return batch

    def test_a_capture_has_as_many_rows_of_nobody_as_it_was_captured_with(self):
        for mode, committed in (("target_verify", 3), ("draft_extend_v2", 0)):
            with self.subTest(mode):
                batch = self.dummies(mode, 4, 3)
                _, truth = sglang_capture_truth(self.backend, self.world.layer, batch)
                self.assertEqual(truth["committed"], [committed] * 4)
                self.assertEqual(truth["new_tokens"], [3] * 4)
                self.assertEqual(truth["live"], [False] * 4)
                self.assertEqual(truth["req_to_token_runs"], [None] * 4)

    def test_a_replay_is_padded_to_the_captured_rows(self):
        batch = self.world.batch("target_verify", [4, 4])
        captured = self.dummies("target_verify", 4, 4)
        mode, truth = sglang_replay_truth(self.backend, self.world.layer, batch, captured)
        self.assertEqual(
            (mode, truth["committed"], truth["live"], truth["new_tokens"]),
            ("target_verify", [30, 9, 0, 0], [True, True, False, False], [4] * 4),
        )
        self.assertEqual(truth["req_to_token_runs"][2:], [None, None])

    def test_what_cannot_be_a_replay_of_it_is_not_judged(self):
        batch = self.world.batch("target_verify", [4, 4])
        captured = self.dummies("target_verify", 1, 4)
        for replayed, text in ((batch, "2 rows are replayed by a graph of 1"), (None, "outside")):
            with self.subTest(text), self.assertRaisesRegex(NoTruth, text):
                sglang_replay_truth(self.backend, self.world.layer, replayed, captured)


if __name__ == "__main__":
    run(__name__)
