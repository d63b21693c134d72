import { type Clock, readFileIfPresent, type Secret } from '../../../core/index.ts'
import { type Kubeconfig, parseKubeconfig, writeKubeconfig } from '../../../kubeconfig/index.ts'
import { withLockFile } from './lock-file.ts'
import { type OidcTokens, tokensIn } from './oidc-config.ts'

/** Keeps the tokens of a user from one process to the next. */
export interface TokenStore {
  /** Lets one process at a time read, refresh and write. */
  exclusively<T>(signal: AbortSignal, act: () => Promise<T>): Promise<T>
  read(): Promise<OidcTokens>
  write(tokens: Required<OidcTokens>): Promise<void>
}

/** Keeps tokens in the kubeconfig that they came from. */
export function kubeconfigTokenStore(path: string, userName: string, clock: Clock): TokenStore {
  const load = async (): Promise<Kubeconfig> =>
    parseKubeconfig((await readFileIfPresent(path)) ?? '', path)
  return {
    exclusively: (signal, act) => withLockFile(path, clock, signal, act),
    read: async () => tokensIn((await load()).users.get(userName)?.authProvider?.config),
    write: async ({ idToken, refreshToken }) => {
      const config = await load()
      const user = config.users.get(userName)
      if (!user?.authProvider) return // somebody has removed it meanwhile
      const settings: Record<string, Secret> = {
        ...user.authProvider.config,
        'id-token': idToken,
        'refresh-token': refreshToken,
      }
      const changed = { ...user, authProvider: { ...user.authProvider, config: settings } }
      const users = new Map(config.users).set(userName, changed)
      await writeKubeconfig(path, { ...config, users })
    },
  }
}

/** Keeps nothing: for a user that came from no file. */
export const forgetfulTokenStore: TokenStore = {
  exclusively: (_signal, act) => act(),
  read: async () => ({}),
  write: async () => {},
}
