import { setMaxListeners } from 'node:events'
import {
  type Controller,
  createEndpointsController,
  createEventTtlController,
  createGarbageCollector,
  createNamespaceController,
  createRootCaController,
  createServiceAccountController,
  kindDefinitions,
  type RootCaSource,
  runController,
} from '../../api/index.ts'
import { RoleAggregation } from '../../authz/index.ts'
import { aborted, type Clock, type ClusterView, type Logger } from '../../core/index.ts'
import { maxControllerStopMs } from '../limits.ts'

/** What the controllers work with. */
export interface ControllerDeps {
  readonly view: ClusterView
  readonly clock: Clock
  readonly log: Logger
  readonly roots: RootCaSource
  readonly eventTtlMs: number
  /** Controllers of features. */
  readonly more: readonly Controller[]
}

function controllersOf(deps: ControllerDeps): Controller[] {
  const { view, clock, roots, eventTtlMs, more } = deps
  const kinds = kindDefinitions.map(({ kind }) => kind)
  return [
    createNamespaceController({ view, clock, kinds }),
    createServiceAccountController(view),
    createRootCaController(view, roots),
    createEndpointsController(view),
    createGarbageCollector({ view, kinds }),
    createEventTtlController({ view, clock, ttlMs: eventTtlMs }),
    ...more,
  ]
}

/** Runs all controllers until `signal` aborts; a controller that fails is logged. */
export async function runControllers(deps: ControllerDeps, signal: AbortSignal): Promise<void> {
  // Each watch listens to it; that is no leak.
  setMaxListeners(0, signal)
  const { view, clock, log } = deps
  const aggregation = new RoleAggregation(view, log)
  const running = controllersOf(deps).map((controller) =>
    runController(controller, { view, clock, log }, signal).catch((err: unknown) =>
      log.error({ err, controller: controller.name }, 'controller failed'),
    ),
  )
  await aggregation.start()
  await aborted(signal)
  await aggregation.stop(AbortSignal.timeout(maxControllerStopMs))
  await Promise.all(running)
}
