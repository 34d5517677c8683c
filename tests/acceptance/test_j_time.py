import time
from kit.doors import doors_of
from kit.runtimes import *
async def test_x(database, broker, tmp_path):
    t=time.time()
    def say(w): print(w, round(time.time()-t,2))
    async with runtime(database, broker, tmp_path, noop_app(), roles=("api",)) as process:
        say("up")
        async with doors_of(process, broker) as doors:
            say("doors")
            await doors.send("stream", {"kind":"generation","project":"p","client_command_id":"a","payload":{"workflow":"noop@1"}})
            say("sent")
            await doors.send("stream", {"kind":"generation","project":"p","client_command_id":"b","payload":{"workflow":"noop@1"}})
            say("sent2")
        say("doors closed")
    say("down")
