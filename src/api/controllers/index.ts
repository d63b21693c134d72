export type { Controller, ControllerOptions, Watch } from './controller.ts'
export { createEndpointsController } from './endpoints/endpoints-controller.ts'
export { createEventTtlController } from './event-ttl.ts'
export { createGarbageCollector } from './garbage-collector.ts'
export { createNamespaceController } from './namespace-controller.ts'
export {
  createRootCaController,
  createServiceAccountController,
  type RootCaSource,
} from './namespace-objects.ts'
export { runController } from './run-controller.ts'
