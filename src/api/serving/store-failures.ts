import { ApiError } from '../../core/index.ts'
import { RecordDamaged, StoreWriteFailed } from '../../storage/index.ts'

/** What a failure of the store means to a client of the API; other errors stay as they are. */
export function explainStoreFailure(error: unknown): unknown {
  if (error instanceof RecordDamaged)
    return new ApiError(
      'InternalError',
      `the stored record ${error.key} is damaged and is not served: restore a backup, or delete the object and create it again`,
      { cause: error, detail: error.message },
    )
  if (error instanceof StoreWriteFailed)
    return new ApiError(
      'ServiceUnavailable',
      'the change could not be stored and was not made: the server cannot write to its store, as when the disk is full',
      { cause: error, detail: error.message, details: { retryAfterSeconds: 10 } },
    )
  return error
}
