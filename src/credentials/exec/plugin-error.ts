import { goQuote } from '../../core/index.ts'
import {
  CredentialError,
  type CredentialErrorCode,
  type CredentialFailure,
} from '../credential-error.ts'

/** A plugin as messages name it. */
export interface PluginName {
  readonly command: string
  readonly resolvedPath?: string
}

/** What went wrong with a plugin; `what` follows its name in a sentence. */
export function pluginError(
  code: CredentialErrorCode,
  { command, resolvedPath }: PluginName,
  what: string,
  more: CredentialFailure = {},
): CredentialError {
  return new CredentialError(code, `exec plugin ${goQuote(command)} ${what}`, {
    command,
    ...(resolvedPath !== undefined && { resolvedPath }),
    ...more,
  })
}
