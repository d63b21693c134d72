export { createEndpointsController } from './endpoints/endpoints-controller.ts'
export { createEventTtlController } from './event-ttl.ts'
export { createGarbageCollector } from './garbage-collector.ts'
export { createNamespaceController } from './namespace-controller.ts'
export {
  createRootCaController,
  createServiceAccountController,
  type RootCaSource,
} from './namespace-objects.ts'
export {
  type Controller,
  type ControllerOptions,
  type ControllerWatch,
  runController,
} from './run-controller.ts'
