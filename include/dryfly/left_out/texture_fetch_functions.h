#error texture_fetch_functions.h cannot be compiled for this computer: textures are not simulated
