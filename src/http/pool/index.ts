export {
  ConnectionPool,
  type ConnectionSupply,
  failWithoutSocket,
  idleMs,
  type PooledConnection,
} from './connection-pool.ts'
