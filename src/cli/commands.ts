import {
  clusterInfoAddCaCommand,
  clusterInfoRemoveCaCommand,
  clusterInfoSetServerCommand,
} from './cluster-info/change.ts'
import { clusterInfoRefreshCommand } from './cluster-info/refresh.ts'
import { clusterInfoShowCommand } from './cluster-info/show.ts'
import type { Command } from './command.ts'
import { credentialCommand } from './credential/credential.ts'
import { doctorIssuerCommand } from './doctor/issuer.ts'
import { guardCommand } from './guard/guard.ts'
import { issuerKeysCommand } from './issuer/keys.ts'
import { issuerPublishCommand } from './issuer/publish.ts'
import { issuerRotateCommand } from './issuer/rotate.ts'
import { issuerServeCommand } from './issuer/serve.ts'
import { issuerVerifyCommand } from './issuer/verify.ts'
import { joinCommand } from './join/join.ts'
import { pkiRotateCaCommand } from './pki/rotate-ca.ts'
import { proxyCommand } from './proxy.ts'
import { serveCommand } from './serve/serve.ts'
import {
  storeBackupCommand,
  storeCheckCommand,
  storeRepairCommand,
  storeRestoreCommand,
} from './store.ts'
import { tokenCreateCommand } from './token/create.ts'
import { tokenDeleteCommand, tokenListCommand, tokenShowCommand } from './token/show.ts'
import { tunnelAgentCommand, tunnelServerCommand } from './tunnel/commands.ts'
import { upCommand } from './up/up.ts'
import { userCreateCommand } from './user/create.ts'
import { userListCommand } from './user/list.ts'
import { userRevokeCommand } from './user/revoke.ts'
import { versionCommand } from './version.ts'
import { workloadRunCommand } from './workload/workload.ts'

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
  storeRepairCommand,
  versionCommand,
]
