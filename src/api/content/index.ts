export {
  type FieldValidation,
  fieldValidationLevels,
  fieldValidationOf,
  type PatchedOptions,
  readPatched,
} from './checked-object.ts'
export { decodeBody, decodeOptions, supportedMediaTypes } from './decode-body.ts'
export { type ParsedJson, parseJson } from './json.ts'
