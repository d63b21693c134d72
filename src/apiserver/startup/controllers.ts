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

/** A last write of theirs may still be under way. */
const stopWithinMs = 1_000

/** What the controllers work with. */
export interface ControllerParts {
  readonly view: ClusterView
  readonly clock: Clock
  readonly log: Logger
  readonly roots: RootCaSource
  readonly eventTtlMs: number
  /** Those of the features. */
  readonly more: readonly Controller[]
}

function controllersOf(parts: ControllerParts): Controller[] {
  const { view, clock, roots, eventTtlMs, more } = parts
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

/** Runs all controllers until `signal` aborts; a controller that dies is a fault and is reported. */
export async function runControllers(parts: ControllerParts, signal: AbortSignal): Promise<void> {
  // Each of the many watches listens to it; that is no leak.
  setMaxListeners(0, signal)
  const { view, clock, log } = parts
  const aggregation = new RoleAggregation(view, log)
  const running = controllersOf(parts).map((controller) =>
    runController(controller, { view, clock, log }, signal).catch((err: unknown) =>
      log.error({ err, controller: controller.name }, 'controller ended'),
    ),
  )
  await aggregation.start()
  await aborted(signal)
  await aggregation.stop(AbortSignal.timeout(stopWithinMs))
  await Promise.all(running)
}
