// Imported before everything else: outside of production the framework formats each refused body at length before we
// answer it in the contract's form.
process.env['NODE_ENV'] ??= 'production'
