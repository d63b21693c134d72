export {
  type ServerOptions,
  serverOptions,
} from './options.ts'
