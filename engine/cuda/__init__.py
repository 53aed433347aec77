"""The GPU as a device: frames are pylibcudf columns; see `bamquery.engine.device`.

Modules here import pylibcudf and rmm at their top, except those that say which plans the device refuses;
nothing outside imports them before `bamquery.engine.device_factory` has seen that both are there.
"""
