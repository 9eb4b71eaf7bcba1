"""Whether a loop goes round."""

from __future__ import annotations

import asyncio

from numalign_agent.pulse import STILL_SECONDS, Pulse


async def test_a_loop_that_goes_round_and_one_that_does_not() -> None:
    now = 100.0
    pulse = Pulse(lambda: now)
    now += STILL_SECONDS
    before = pulse.still()
    running = asyncio.create_task(pulse.run())
    await asyncio.sleep(0)
    beating = pulse.still()
    running.cancel()
    now += STILL_SECONDS - 1
    lately = pulse.still()
    now += 6
    after = pulse.still()

    assert before == "the loop stands still since 60 s"
    assert (beating, lately) == (None, None)
    assert after == "the loop stands still since 65 s"
