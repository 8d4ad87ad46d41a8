"""Every error that tiltrm raises on purpose. Each message says: expected, got, remedy.

TiltrmError
├── PuzzleError       a puzzle that cannot be read or contradicts itself
│   └── SizeError     a puzzle of a size that its task does not hold
├── DataError         a file, folder or dataset that cannot be read
├── CheckpointError   a checkpoint that does not hold the model it should
├── SettingsError     a setting out of its range, or unknown
├── DegenerateError   a cloud with no weight left, or a model that gave NaN
└── DeviceError       a device that is missing or too small
"""


class TiltrmError(Exception):
    """Base of all errors whose message is meant for the user."""


class PuzzleError(TiltrmError):
    """A puzzle that cannot be read or contradicts itself."""


class SizeError(PuzzleError):
    """A puzzle of a size that its task does not hold."""


class DataError(TiltrmError):
    """A file, folder or dataset that cannot be read."""


class CheckpointError(TiltrmError):
    """A checkpoint that does not hold the model it should."""


class SettingsError(TiltrmError):
    """A setting out of its range, or unknown."""


class DegenerateError(TiltrmError):
    """A cloud whose every weight is zero, or a model that gave NaN."""


class DeviceError(TiltrmError):
    """A device that is missing or too small."""
