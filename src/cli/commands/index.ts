import type { Command } from '../command.ts'
import {
  clusterInfoAddCaCommand,
  clusterInfoRemoveCaCommand,
  clusterInfoSetServerCommand,
} from './cluster-info-change.ts'
import { clusterInfoRefreshCommand } from './cluster-info-refresh.ts'
import { clusterInfoShowCommand } from './cluster-info-show.ts'
import { credentialCommand } from './credential.ts'
import { doctorIssuerCommand } from './doctor-issuer.ts'
import { guardCommand } from './guard.ts'
import { issuerKeysCommand } from './issuer-keys.ts'
import { issuerPublishCommand } from './issuer-publish.ts'
import { issuerRotateCommand } from './issuer-rotate.ts'
import { issuerServeCommand } from './issuer-serve.ts'
import { issuerVerifyCommand } from './issuer-verify.ts'
import { joinCommand } from './join.ts'
import { pkiRotateCaCommand } from './pki-rotate-ca.ts'
import { proxyCommand } from './proxy.ts'
import { serveCommand } from './serve.ts'
import { storeBackupCommand, storeCheckCommand, storeRestoreCommand } from './store.ts'
import { tokenCreateCommand } from './token-create.ts'
import { tokenDeleteCommand } from './token-delete.ts'
import { tokenListCommand } from './token-list.ts'
import { tokenShowCommand } from './token-show.ts'
import { tunnelAgentCommand } from './tunnel-agent.ts'
import { tunnelServerCommand } from './tunnel-server.ts'
import { upCommand } from './up.ts'
import { userCreateCommand } from './user-create.ts'
import { userListCommand } from './user-list.ts'
import { userRevokeCommand } from './user-revoke.ts'
import { versionCommand } from './version.ts'
import { workloadRunCommand } from './workload-run.ts'

/** Every command, in the order in which help lists them. */
export const commands: readonly Command[] = [
  upCommand,
  serveCommand,
  joinCommand,
  proxyCommand,
  guardCommand,
  tunnelServerCommand,
  tunnelAgentCommand,
  userCreateCommand,
  userListCommand,
  userRevokeCommand,
  tokenCreateCommand,
  tokenListCommand,
  tokenShowCommand,
  tokenDeleteCommand,
  clusterInfoShowCommand,
  clusterInfoSetServerCommand,
  clusterInfoAddCaCommand,
  clusterInfoRemoveCaCommand,
  clusterInfoRefreshCommand,
  pkiRotateCaCommand,
  credentialCommand,
  issuerKeysCommand,
  issuerRotateCommand,
  issuerPublishCommand,
  issuerServeCommand,
  issuerVerifyCommand,
  doctorIssuerCommand,
  workloadRunCommand,
  storeCheckCommand,
  storeBackupCommand,
  storeRestoreCommand,
  versionCommand,
]
