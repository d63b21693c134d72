export {
  ConnectionPool,
  type ConnectionSupply,
  failWithoutSocket,
  idleMs,
} from './connection-pool.ts'
