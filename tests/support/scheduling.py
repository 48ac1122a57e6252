"""Which worker runs which tests: one all of a group, and one all of a file; groups are first.

What a file's tests import, set up and cache is then there once. With ``--dist loadgroup`` alone
each worker gets every other test, so all of them do all of it.
"""

from __future__ import annotations

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController


class ByFile(LoadGroupScheduling):
    """Hand out groups, which take long, and then files: those of many tests first."""

    def _split_scope(self, nodeid: str) -> str:
        group = super()._split_scope(nodeid)
        return nodeid.partition("::")[0] if group == nodeid else group

    def _assign_work_unit(self, node: WorkerController) -> None:
        group = next((scope for scope in self.workqueue if not scope.endswith(".py")), None)
        if group:
            self.workqueue.move_to_end(group, last=False)
        super()._assign_work_unit(node)
