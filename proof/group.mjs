// A process and all that it starts, as one group. It ends when it is told to, and whenever this
// process does, however that ends: tests start servers, and a server in an endless script ends by
// nothing but SIGKILL.
import { spawn } from 'node:child_process'
import { once } from 'node:events'

/**
 * The guard of a group, `$0`: reads until this process, which holds the other end, is gone, kills
 * the group, and removes its folder, `$1`. It is no part of the terminal's group, so that it
 * outlives a Ctrl-C.
 */
const GUARD = 'trap "" HUP INT TERM; cat > /dev/null; kill -s KILL -- "-$0"; [ -z "$1" ] || rm -rf -- "$1"'

/** Everything that `grouped` must be started with. */
export const IN_ITS_OWN_GROUP = { detached: true }

/**
 * `leader`: a process that was just started with `IN_ITS_OWN_GROUP`. `folder`: what goes with it if
 * this process cannot see to that.
 */
export function grouped(leader, folder = '') {
  const { pid } = leader
  // It could not be started: its `error` event says so.
  if (pid === undefined) return { leader, kill() {}, async end() {} }
  const guard = spawn('sh', ['-c', GUARD, `${pid}`, folder], { ...IN_ITS_OWN_GROUP, stdio: ['pipe', 'ignore', 'ignore'] })
  guard.unref()
  guard.stdin.unref()
  const kill = () => {
    try {
      process.kill(-pid, 'SIGKILL')
    } catch {
      // None of them is left.
    }
  }
  const end = async () => {
    kill()
    if (leader.exitCode === null && leader.signalCode === null) await once(leader, 'exit')
    guard.kill('SIGKILL')
  }
  return { leader, kill, end }
}

/**
 * Runs a command to its end, and ends all that it has left behind. Resolves with its code; 1 if a
 * signal ended it.
 */
export async function runGrouped(command, args, options = {}) {
  const group = grouped(spawn(command, args, { stdio: 'inherit', ...options, ...IN_ITS_OWN_GROUP }))
  const [code] = await once(group.leader, 'exit')
  await group.end()
  return code ?? 1
}
