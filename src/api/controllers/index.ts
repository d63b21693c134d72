export type { Controller, ControllerOptions } from './controller.ts'
export { runController } from './run-controller.ts'
