import { type ClusterView, silentLogger, systemClock } from '../../core/index.ts'
import {
  type Controller,
  type ControllerWatch,
  type Outcome,
  type Reconcile,
  watchKeys,
} from './run-controller.ts'

/** A controller whose informers run and whose keys are reconciled by the test. */
export interface StartedController {
  /** The keys that were asked for since the last call, in order, each once. */
  takeKeys(): string[]
  /** The informers have all changes up to now. */
  settled(): Promise<void>
  reconcile(key: string): Promise<Outcome>
}

/** Starts a controller; resolves when its informers are synced. */
export async function startController(
  controller: Controller,
  view: ClusterView,
  signal: AbortSignal,
): Promise<StartedController> {
  const keys = new Set<string>()
  const informers: ReturnType<typeof watchKeys>[] = []
  const enqueue = (key: string): void => void keys.add(key)
  const options = { view, log: silentLogger, clock: systemClock, signal }
  const reconcile: Reconcile = controller.start({
    watch<T>(watch: ControllerWatch<T>) {
      const informer = watchKeys(watch, options, enqueue)
      informers.push(informer)
      return informer
    },
    enqueue,
  })
  await Promise.all(informers.map(({ synced }) => synced))
  return {
    takeKeys() {
      const taken = [...keys]
      keys.clear()
      return taken
    },
    async settled() {
      for (const informer of informers) while (!(await informer.confirm(0, signal)));
    },
    reconcile: (key) => reconcile(key, signal),
  }
}
