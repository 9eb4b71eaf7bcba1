"""CPUs of as few sockets as will do, before any algorithm spreads them over NUMA nodes.

Beyond the kubelet, whose `distribute-cpus-across-numa` looks for the evenest NUMA nodes wherever
they are (CPU-63); its `align-by-socket` steers hints and affinities, and without these nothing
(CPU-50). Separate from the algorithms: this only offers them less.
"""

from __future__ import annotations

from dataclasses import dataclass

from numalign.cpu.take import Taker
from numalign.cpu.topology import CpuTopology


@dataclass(frozen=True, slots=True)
class FewSockets:
    """Takes what `take` takes of the CPUs of a few sockets; sets of CPUs are bits.

    `whole_cores`: as full-pcpus-only wants it, a socket has as many CPUs as its wholly free cores.
    """

    topology: CpuTopology
    take: Taker
    whole_cores: bool = False

    def __call__(self, offered: int, count: int) -> int:
        """Choose `count` CPUs out of `offered`. Raises AssignmentError as `take` does."""
        return self.take(self._offered(offered, count), count)

    def _offered(self, offered: int, count: int) -> int:
        """The CPUs of the fullest socket that has enough; else of the emptiest, and so on.

        All of `offered` where all sockets together have not enough.
        """
        sockets = [socket & offered for socket in self.topology.sockets.values()]
        chosen = 0
        need = count
        while sockets:
            enough = [socket for socket in sockets if self._size(socket) >= need]
            if enough:
                return chosen | min(enough, key=self._size)
            emptiest = max(sockets, key=self._size)
            sockets.remove(emptiest)
            chosen |= emptiest
            need -= self._size(emptiest)
        return offered

    def _size(self, cpus: int) -> int:
        if not self.whole_cores:
            return cpus.bit_count()
        whole = (core for core in self.topology.cores.values() if core & cpus == core)
        return sum(map(int.bit_count, whole))
