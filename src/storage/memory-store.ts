import { type Logger, silentLogger } from '../core/index.ts'
import type { Store } from './contract.ts'
import { LocalStore } from './local-store.ts'
import { defaultHistoryLimits, type HistoryLimits } from './mirror/history.ts'
import { firstRevision, Mirror } from './mirror/mirror.ts'

/** A store that forgets everything when the process ends. */
export function openMemoryStore(
  options: { readonly log?: Logger; readonly history?: HistoryLimits } = {},
): Store {
  const log = options.log ?? silentLogger
  const mirror = new Mirror({
    records: [],
    events: [],
    floor: firstRevision,
    revision: firstRevision,
    limits: options.history ?? defaultHistoryLimits,
    onSinkFailure: (err) => log.error({ err }, 'watch sink failed'),
  })
  return new LocalStore(mirror, () => Promise.resolve())
}
