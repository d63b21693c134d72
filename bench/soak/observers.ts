import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { requirePeer } from '../peers.ts'
import type { ApiClient } from './api-client.ts'
import type { ObservedEvent } from './ledger.ts'
import { eventIn } from './seen.ts'
import { collection } from './writer.ts'

/** Somebody who follows the changes of all objects. */
export interface Observer {
  /** By the name of the object. */
  readonly events: ReadonlyMap<string, readonly ObservedEvent[]>
  /** How many events there were. */
  count(): number
  stop(): Promise<void>
}

class Notes {
  readonly events = new Map<string, ObservedEvent[]>()
  total = 0

  add(name: string, event: ObservedEvent): void {
    this.total++
    const known = this.events.get(name)
    if (known) known.push(event)
    else this.events.set(name, [event])
  }
}

const retryMs = 20

/** Watches from `version` on and resumes after every cut where it was: it can miss nothing unseen. */
export function startWatch(
  client: ApiClient,
  version: string,
  problems: string[],
): Observer & { readonly resumed: () => number } {
  const notes = new Notes()
  let last = version
  let resumed = -1
  let isOver = false
  const onLine = (line: string): void => {
    const { type, object } = eventIn(line)
    if (type === 'ERROR') {
      problems.push(`the watch from ${last} was answered ${line.slice(0, 300)}`)
      isOver = true
      return
    }
    last = object.version
    if (type !== 'BOOKMARK') notes.add(object.name, { type, version: object.version })
  }
  const follow = async (): Promise<void> => {
    while (!isOver) {
      resumed++
      const query = `watch=true&allowWatchBookmarks=true&resourceVersion=${last}`
      // A cut is what this is about.
      await client.lines(`${collection}?${query}`, onLine).catch(() => {})
      await delay(retryMs)
    }
  }
  const following = follow()
  return {
    events: notes.events,
    count: () => notes.total,
    resumed: () => resumed,
    async stop() {
      isOver = true
      client.close()
      await following
    },
  }
}

/** Starts client-go's informer on the same objects and waits until it has its first list. */
export async function startInformer(kubeconfig: string): Promise<Observer> {
  const notes = new Notes()
  const flags = ['--kubeconfig', kubeconfig, '--namespace', 'soak']
  const child = spawn(requirePeer('informer'), flags, { stdio: ['pipe', 'pipe', 'ignore'] })
  const gone = once(child, 'close')
  let synced = () => {}
  const isSynced = new Promise<void>((resolve) => {
    synced = resolve
  })
  createInterface({ input: child.stdout }).on('line', (line) => {
    const event: unknown = JSON.parse(line)
    if (!(event instanceof Object && 'type' in event)) return
    if (event.type === 'SYNCED') synced()
    else if ('name' in event && 'resourceVersion' in event) {
      const version = String(event.resourceVersion)
      const relisted = 'relisted' in event && event.relisted === true
      notes.add(String(event.name), { type: String(event.type), version, relisted })
    }
  })
  await Promise.race([
    isSynced,
    gone.then(() => {
      throw new Error('the informer ended at once')
    }),
  ])
  return {
    events: notes.events,
    count: () => notes.total,
    async stop() {
      child.stdin.end()
      await gone
    },
  }
}
