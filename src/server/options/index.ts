export {
  problemsOfServerOptions,
  type ServerOptions,
  serverOptions,
} from './server-options.ts'
