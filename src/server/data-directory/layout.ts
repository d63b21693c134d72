import { join } from 'node:path'

/** Where the parts of a server's state lie. */
export interface DataDirectory {
  readonly path: string
  readonly pki: string
  readonly store: string
  readonly adminKubeconfig: string
  readonly auditLog: string
  readonly lock: string
}

/** The parts of the data directory at `path`, whether they are there or not. */
export function dataDirectoryAt(path: string): DataDirectory {
  return {
    path,
    pki: join(path, 'pki'),
    store: join(path, 'store'),
    adminKubeconfig: join(path, 'admin.kubeconfig'),
    auditLog: join(path, 'audit.log'),
    lock: join(path, 'lock'),
  }
}
